"""`convdsl bench`: operators beside other libraries, with the error of every result."""
